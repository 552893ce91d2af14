"""Training a small cross-encoder of our own, from examples to a model that has earned its place.

    examples, headings   (query, relevant document) pairs from BEIR folders, pair files, or a corpus's own headings
    splits               which queries train, which choose, which judge: fixed by a hash of the query's id
    pools                what the product retrieves for each query, with the first stage's scores
    lists                relevant passages with hard negatives out of the pools
    trainer, losses      the first layers of a bi-encoder, distilled from a teacher, then trained on what the first
                         stage gets wrong: its calibrated score is a fixed offset in the loss
    exporting            ONNX, int8, int8 against full precision
    gate                 nDCG@10 before and after, on test queries of sets that it was and was not trained on
    installing           copies the model, with its card, to where it is served from; refuses one that the gate refused

Mining needs an index, which this package does not know: `retrieval.training` makes the pools and hands them over. Only
`trainer`, `losses` and `exporting` need the extra `train`; nothing here is imported by the service.
"""
