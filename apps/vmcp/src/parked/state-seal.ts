import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'

const PREFIX = 'vmcp1.'
const IV_BYTES = 12
const TAG_BYTES = 16

/** Seals what a client carries from one request to the next: it can neither read nor change it. The key lives as long as the process. */
export class StateSeal {
  readonly #key = randomBytes(32)

  seal(state: JsonObject): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv)
    const sealed = Buffer.concat([cipher.update(JSON.stringify(state), 'utf8'), cipher.final()])
    return PREFIX + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** Undefined for everything that this process has not sealed. */
  open(text: unknown): JsonObject | undefined {
    if (typeof text !== 'string' || !text.startsWith(PREFIX) || text.length > MAX_LENGTH) return undefined
    const encoded = text.slice(PREFIX.length)
    const bytes = Buffer.from(encoded, 'base64url')
    // Decoders skip what is no base64url; one text only must stand for a state.
    if (bytes.length <= IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== encoded) return undefined
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES))
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const plain = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
      const state: unknown = JSON.parse(plain.toString('utf8'))
      return isObject(state) ? state : undefined
    } catch {
      return undefined // not sealed with this key, or changed since
    }
  }
}

const MAX_LENGTH = 4_096
