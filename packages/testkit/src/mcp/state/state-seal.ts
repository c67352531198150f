import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { INVALID_PARAMS, type JsonObject, objectOf, RpcError } from '../wire/json-rpc.ts'

const LIFETIME_MS = 10 * 60_000

/** The binding of a `requestState`: it is worthless for another method or another tool. */
export interface SealedState {
  readonly target: string
  readonly answers: JsonObject
}

export interface StateSeal {
  seal(state: SealedState): string
  /** Throws -32602 when the text was altered, is too old, or was made for another target. */
  open(sealed: string, target: string): SealedState
}

/** `requestState` travels through the client, so it is signed: base64url(JSON) "." base64url(HMAC). */
export function createStateSeal(): StateSeal {
  const key = randomBytes(32)
  const sign = (body: string) => createHmac('sha256', key).update(body).digest()
  return {
    seal: (state) => {
      const body = Buffer.from(JSON.stringify({ ...state, expires: Date.now() + LIFETIME_MS })).toString('base64url')
      return `${body}.${sign(body).toString('base64url')}`
    },
    open: (sealed, target) => {
      const [body = '', mac = '', ...rest] = sealed.split('.')
      const expected = sign(body)
      const given = Buffer.from(mac, 'base64url')
      const genuine =
        rest.length === 0 && given.toString('base64url') === mac && given.length === expected.length && timingSafeEqual(given, expected)
      if (!genuine) throw refused('was not made by this server')
      const state = objectOf(JSON.parse(Buffer.from(body, 'base64url').toString('utf8')))
      if (Number(state['expires']) < Date.now()) throw refused('has expired')
      if (state['target'] !== target) throw refused('belongs to another request')
      return { target, answers: objectOf(state['answers']) }
    },
  }
}

function refused(why: string): RpcError {
  return new RpcError(INVALID_PARAMS, `requestState ${why}`)
}
