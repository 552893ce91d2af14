"""Steps of indexing jobs that have a model say something about documents, and answers to files of questions."""
