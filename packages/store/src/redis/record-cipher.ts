import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Seals records so that a reader of the store learns nothing, and so that none can be moved or changed. */
export interface RecordCipher {
  /** `place`: the key under which the record lies and everything else that it must not be separated from. */
  seal(text: string, place: string): Buffer
  /** Undefined: sealed with an unknown key, for another place, or damaged. */
  open(sealed: Buffer, place: string): string | undefined
}

const ID_BYTES = 8
const IV_BYTES = 12
const TAG_BYTES = 16

interface Key {
  readonly id: Buffer
  readonly bytes: Buffer
}

/** AES-256-GCM. The first secret seals; all of them open, so that a key can be replaced. */
export function createRecordCipher(secrets: readonly string[]): RecordCipher {
  const keys = secrets.map(keyOf)
  const [current] = keys
  if (current === undefined) throw new RangeError('a cipher needs a secret')
  return {
    seal(text, place) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current.bytes, iv)
      cipher.setAAD(Buffer.from(place))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([current.id, iv, cipher.getAuthTag(), sealed])
    },
    open(sealed, place) {
      const key = keys.find(({ id }) => id.equals(sealed.subarray(0, ID_BYTES)))
      if (key === undefined || sealed.length < ID_BYTES + IV_BYTES + TAG_BYTES) return undefined
      const at = ID_BYTES + IV_BYTES
      try {
        const decipher = createDecipheriv('aes-256-gcm', key.bytes, sealed.subarray(ID_BYTES, at), { authTagLength: TAG_BYTES })
        decipher.setAAD(Buffer.from(place))
        decipher.setAuthTag(sealed.subarray(at, at + TAG_BYTES))
        return Buffer.concat([decipher.update(sealed.subarray(at + TAG_BYTES)), decipher.final()]).toString('utf8')
      } catch {
        return undefined // damaged or of another place: the caller treats it as absent
      }
    },
  }
}

/** Without any secret records lie in the clear. A sealed record is unreadable then, and the other way round. */
export const CLEAR_RECORDS: RecordCipher = {
  seal: (text) => Buffer.concat([CLEAR_ID, Buffer.from(text)]),
  open: (sealed) => (sealed.subarray(0, ID_BYTES).equals(CLEAR_ID) ? sealed.subarray(ID_BYTES).toString('utf8') : undefined),
}

const CLEAR_ID = Buffer.alloc(ID_BYTES)

function keyOf(secret: string): Key {
  const derived = Buffer.from(hkdfSync('sha256', secret, 'toolhive', 'session records', 32 + ID_BYTES))
  return { bytes: derived.subarray(0, 32), id: derived.subarray(32) }
}
