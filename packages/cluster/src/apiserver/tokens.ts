import { createHash, timingSafeEqual } from 'node:crypto'

/** Who a bearer token stands for. */
export interface User {
  readonly name: string
  readonly groups: readonly string[]
}

/** The tokens that are good. Compared by digest and all of them every time, so that time tells nothing about them. */
export class Tokens {
  readonly #known: { readonly digest: Buffer; readonly user: User }[] = []

  add(token: string, user: User): void {
    if (token.length < 16) throw new RangeError('a bearer token of less than 16 characters can be guessed')
    this.#known.push({ digest: digestOf(token), user })
  }

  /** Of an Authorization header; undefined for a missing, malformed or unknown one. */
  userOf(authorization: string | undefined): User | undefined {
    const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
    if (token === undefined) return undefined
    const digest = digestOf(token)
    let found: User | undefined
    for (const known of this.#known) if (timingSafeEqual(known.digest, digest)) found = known.user
    return found
  }
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
