import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { isObject, type JsonObject } from '../json-rpc.ts'

/** One key and the name by which a sealed text refers to it. */
export interface SealKey {
  readonly id: string
  readonly key: Buffer
}

const PREFIX = 'vmcp1.'
const IV_BYTES = 12
const TAG_BYTES = 16
/** Of base64url: the texts of clients are not decoded without a limit. */
const MAX_LENGTH = 128 * 1_024

/** Seals what a client carries from one request to the next: it can neither read nor change it (AES-256-GCM). */
export class StateSeal {
  readonly #keys: readonly [SealKey, ...SealKey[]]

  /** The first key seals; all of them open. */
  constructor(keys: readonly [SealKey, ...SealKey[]]) {
    this.#keys = keys
  }

  seal(state: JsonObject): string {
    const [{ id, key }] = this.#keys
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', key, iv)
    const sealed = Buffer.concat([cipher.update(JSON.stringify(state), 'utf8'), cipher.final()])
    return `${PREFIX}${id}.${Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')}`
  }

  /** Undefined for everything that was not sealed with one of the keys. */
  open(text: unknown): JsonObject | undefined {
    if (typeof text !== 'string' || !text.startsWith(PREFIX) || text.length > MAX_LENGTH) return undefined
    const [id, encoded = '', ...rest] = text.slice(PREFIX.length).split('.', 3)
    const key = this.#keys.find((each) => each.id === id)?.key
    const bytes = Buffer.from(encoded, 'base64url')
    // Decoders skip what is no base64url; one text only must stand for a state.
    const isCanonical = rest.length === 0 && bytes.toString('base64url') === encoded
    if (key === undefined || bytes.length <= IV_BYTES + TAG_BYTES || !isCanonical) return undefined
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const plain = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
      const state: unknown = JSON.parse(plain.toString('utf8'))
      return isObject(state) ? state : undefined
    } catch {
      return undefined // not sealed with this key, or changed since
    }
  }
}
