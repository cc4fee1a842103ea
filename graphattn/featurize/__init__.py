"""From SMILES or RDKit molecules to graphs of integer codes; public names live in ``graphattn``."""
