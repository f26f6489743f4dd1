"""The zoo: entries of ``models.yaml`` become frozen, verified backbones.

Cases are collected without torch: ``sources``, ``spec``, ``models``, ``weights``, ``download`` and ``contents`` import
nothing that needs it.
"""
