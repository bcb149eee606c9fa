"""The five services and what they share: domain, stores, language models, runtimes."""
