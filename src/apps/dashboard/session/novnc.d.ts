/** The part of noVNC that the live screen uses. */
declare module '@novnc/novnc' {
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, socket: WebSocket, options: { credentials: object });
    scaleViewport: boolean;
    viewOnly: boolean;
    background: string;
    focus(): void;
    disconnect(): void;
  }
}
