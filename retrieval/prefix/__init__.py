"""The order of passages that lets a model server use again what it has computed of earlier prompts."""
