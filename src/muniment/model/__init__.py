"""The typed artifacts of the pipeline: frozen, validated, no IO."""
