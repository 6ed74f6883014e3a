// Search in pages that were opened from a folder. Browsers start no Worker from file:, so there the script of the worker
// runs in a hidden frame. Material's `offline` plugin would fetch such a script from elsewhere, unless it finds one by this name.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.early = []; // messages from before the script has loaded
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.onload = () => {
        const inner = frame.contentWindow;
        inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = () => {
          this.postMessage = (data) => inner.dispatchEvent(new MessageEvent("message", { data }));
          this.early.forEach(this.postMessage);
        };
        inner.document.body.append(script);
      };
      document.body.append(frame);
    }

    postMessage(data) {
      this.early.push(data);
    }
  };
}
