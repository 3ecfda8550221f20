# In a checkout type checkers learn here what `parlour.same_modules` does while a program runs.
from webui import WebUI as WebUI
