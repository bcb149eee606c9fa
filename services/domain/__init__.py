"""What the memory means: pure values and laws, importing nothing of ours."""
