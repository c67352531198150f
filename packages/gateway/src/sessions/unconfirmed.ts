/**
 * A legacy session whose client has sent nothing since its `initialize` ends after this time: a client that works goes on with
 * `notifications/initialized` at once, and unused sessions are not kept for hours.
 */
export const UNCONFIRMED_MS = 60_000
