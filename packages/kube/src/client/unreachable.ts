import { isThvError, ThvError } from '@thv/kernel/errors'
import type { CallName } from './kube-api-error.ts'

/** Failures of the connection that may pass by themselves. Certificate and protocol errors are not among them. */
const TRANSIENT = new Set([
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_SOCKET',
])

/** The request got no answer, or only part of one. `details.code` is the system's or undici's. */
export function unreachable(call: CallName, origin: string, cause: unknown): ThvError {
  const code = codeOf(cause)
  return new ThvError(
    'kube_unreachable',
    `${call.verb} ${call.target}: no connection to ${origin}${code === undefined ? '' : ` (${code})`}`,
    {
      cause,
      details: { code },
    },
  )
}

export function isTransient(error: unknown): boolean {
  return isThvError(error, 'kube_unreachable') && typeof error.details.code === 'string' && TRANSIENT.has(error.details.code)
}

export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
