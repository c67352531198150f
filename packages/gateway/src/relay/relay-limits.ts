import type { RelayLimits } from './relay-call.ts'

/** Times are milliseconds. */
export interface HttpBackendLimits extends RelayLimits {
  /** No call lives longer, whatever the backend says meanwhile. */
  readonly hardTimeoutMs: number
  readonly responseBytes: number
  /** One event of a stream that stays open. */
  readonly frameBytes: number
  /** For a handshake, and whatever else the client waits for in vain. */
  readonly askTimeoutMs: number
  readonly sessionTtlMs: number
  readonly checkIntervalMs: number
  readonly checkTimeoutMs: number
  readonly checkThreshold: number
}

const MINUTE = 60_000
const MEBIBYTE = 1024 * 1024

export const HTTP_BACKEND_LIMITS: HttpBackendLimits = {
  inspectBytes: 64 * 1024,
  editBytes: 32 * MEBIBYTE,
  idleMs: MINUTE,
  hardTimeoutMs: 10 * MINUTE,
  responseBytes: 100 * MEBIBYTE,
  frameBytes: 32 * MEBIBYTE,
  askTimeoutMs: MINUTE,
  sessionTtlMs: 120 * MINUTE,
  checkIntervalMs: 10_000,
  checkTimeoutMs: 5_000,
  checkThreshold: 2,
}
