// Begin.

const explorer = new App(JSON.parse(byId("document").textContent));
window.flambeau = explorer; // for the console, and for whoever drives the page
explorer.start();
