"""How results are shown: text for people, JSON for programs. This package decides neither what is shown nor
why.
"""
