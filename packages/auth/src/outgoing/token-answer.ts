import { type HeaderMap, headerText } from '@thv/http/header-map'
import { isObject } from '@thv/kernel/json'
import { TokenRequestFailed } from './token-request-failed.ts'

export interface TokenGrant {
  readonly token: string
  /** Undefined: the endpoint does not say how long it lives. */
  readonly expiresInMs: number | undefined
}

export interface TokenAnswer {
  readonly status: number
  readonly headers: HeaderMap
  readonly body: Buffer
}

export interface AnswerRules {
  /** RFC 8693 §2.2.1 demands `issued_token_type`. */
  readonly isExchange: boolean
}

/** The characters of RFC 6750 §2.1, and no more of them than servers accept in a header. */
const TOKEN = /^[\w.~+/-]{1,16384}=*$/
const ERROR_CODE = /^[\x20\x21\x23-\x5b\x5d-\x7e]{1,64}$/
const MAX_LIFE_SECONDS = 24 * 3_600

/** Reads the answer of a token endpoint (RFC 6749 §5). Throws TokenRequestFailed. */
export function readTokenAnswer(answer: TokenAnswer, { isExchange }: AnswerRules): TokenGrant {
  const { status } = answer
  if (status === 429 || status >= 500) throw unavailable(answer)
  const document = documentOf(answer.body)
  if (status !== 200) throw refusalOf(status, document, isExchange)
  if (document === undefined) throw malformed('the answer is not a JSON object')
  const { access_token: token, token_type: type, issued_token_type: issued } = document
  if (typeof token !== 'string' || !TOKEN.test(token)) throw malformed('the answer has no usable access_token')
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') throw malformed('token_type is not Bearer')
  if (isExchange && (typeof issued !== 'string' || issued === '')) throw malformed('issued_token_type is missing')
  return { token, expiresInMs: lifeOf(document['expires_in']) }
}

function refusalOf(status: number, document: Readonly<Record<string, unknown>> | undefined, isExchange: boolean): TokenRequestFailed {
  if (status >= 300 && status < 400) return malformed(`the endpoint redirects (${status})`)
  const error = document?.['error']
  if (typeof error !== 'string' || !ERROR_CODE.test(error)) return malformed(`the endpoint answered ${status} without an error code`)
  const kind = isExchange && isAboutSubject(error, document?.['error_description']) ? 'subject' : 'refused'
  return new TokenRequestFailed(kind, `the endpoint answered ${status} ${error}`)
}

/**
 * RFC 8693 §2.2.2 has `invalid_request` for a subject token that is not accepted, which is also the code for a bad request. So there the
 * description decides, if there is one.
 */
function isAboutSubject(error: string, description: unknown): boolean {
  if (error === 'invalid_grant' || error === 'invalid_token') return true
  if (error !== 'invalid_request') return false
  if (typeof description !== 'string' || description === '') return true
  return /subject|\btoken\b/i.test(description) && !/token_type|parameter/i.test(description)
}

/** Texts are read too: some providers write numbers so. Without a usable number the lifetime is unknown. */
function lifeOf(value: unknown): number | undefined {
  const seconds = typeof value === 'number' || (typeof value === 'string' && /^\d{1,12}$/.test(value)) ? Number(value) : Number.NaN
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), MAX_LIFE_SECONDS) * 1_000 : undefined
}

function documentOf(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    return isObject(value) ? value : undefined
  } catch {
    return undefined // the caller says so
  }
}

function unavailable({ status, headers }: TokenAnswer): TokenRequestFailed {
  const seconds = Number(headerText(headers['retry-after']))
  const retryAfterMs = seconds > 0 && seconds <= 60 ? seconds * 1_000 : undefined
  return new TokenRequestFailed('unavailable', `the endpoint answered ${status}`, { retryAfterMs })
}

function malformed(message: string): TokenRequestFailed {
  return new TokenRequestFailed('refused', message)
}
