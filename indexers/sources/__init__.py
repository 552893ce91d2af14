"""Where documents come from: folders, object stores, sites, repositories, databases."""
