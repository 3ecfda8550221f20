"""Models of the Transformers library on ZeroGPU: each reply is written by a process that has a GPU for some seconds."""
