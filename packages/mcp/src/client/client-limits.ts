/** Every wait and every pile of a client has an end. */
export interface ClientLimits {
  /** A request, unless it brings its own. */
  readonly timeoutMs: number
  /** Era and handshake together. */
  readonly connectTimeoutMs: number
  /** One `server/discover` to find out the era. */
  readonly probeTimeoutMs: number
  /** Time limit of the last messages: ending a session, or cancelling a request. */
  readonly farewellMs: number
  readonly maxMessageBytes: number
  /** `input_required` answers to one request. */
  readonly maxRounds: number
  /** Rounds in a row that ask for nothing but patience. */
  readonly maxStateOnlyRounds: number
  readonly maxPages: number
  readonly maxItems: number
  /** Requests of the server that are being answered at a time. */
  readonly maxServerRequests: number
  /** Our requests in flight on one pipe. */
  readonly maxInFlight: number
  /** Attempts in a row to resume a broken stream that bring nothing. */
  readonly maxResumes: number
}

const DEFAULT_LIMITS: ClientLimits = {
  timeoutMs: 60_000,
  connectTimeoutMs: 30_000,
  probeTimeoutMs: 5_000,
  farewellMs: 2_000,
  maxMessageBytes: 100 * 1024 * 1024,
  maxRounds: 10,
  maxStateOnlyRounds: 5,
  maxPages: 1_000,
  maxItems: 100_000,
  maxServerRequests: 32,
  maxInFlight: 1_024,
  maxResumes: 5,
}

export function clientLimits(limits: Partial<ClientLimits> | undefined): ClientLimits {
  return { ...DEFAULT_LIMITS, ...limits }
}
