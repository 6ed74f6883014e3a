// Before anything is painted: the theme that was chosen last time.
"use strict";
const chosenTheme = localStorage.getItem("driftsack-theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;
