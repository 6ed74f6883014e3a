// Apply the saved theme before the first paint.
"use strict";
const chosenTheme = localStorage.getItem("driftsack-theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;
