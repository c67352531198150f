import { createHash, randomBytes } from 'node:crypto'
import { signIn } from '@thv/testkit/oidc/sign-in'
import { REDIRECT_URI } from './test-auth-server.ts'

export type WorkKind = 'logins' | 'refreshes' | 'vault writes'

export interface WorkCount {
  begun: number
  ended: number
  /** The server said that it should be tried again, and that ended the work. */
  retry: number
  /** It failed after no replica had a write of it in time, which the server counts. */
  unacknowledged: number
  /** It failed in any other way. */
  lost: number
}

/** The work that clients asked for, and its outcomes. */
export class Ledger {
  readonly counts: Readonly<Record<WorkKind, WorkCount>> = { logins: none(), refreshes: none(), 'vault writes': none() }
  /** Of everything that was lost. */
  readonly problems: string[] = []

  /** `work` says how it ended. `isAcknowledged`: replicas had all that it relies on. */
  async enter(kind: WorkKind, work: () => Promise<'ended' | 'retry'>, isAcknowledged: () => boolean): Promise<void> {
    const count = this.counts[kind]
    count.begun++
    try {
      count[await work()]++
    } catch (error) {
      if (!isAcknowledged()) return void count.unacknowledged++
      count.lost++
      this.problems.push(`${kind}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  table(): string {
    const row = (cells: readonly (string | number)[]) =>
      cells.map((cell, index) => (index === 0 ? String(cell).padEnd(14) : String(cell).padStart(16))).join('')
    const rows = Object.entries(this.counts).map(([kind, count]) =>
      row([kind, count.begun, count.ended, count.retry, count.unacknowledged, count.lost]),
    )
    return [row(['', 'begun', 'ended', 'said retry', 'unacknowledged', 'lost']), ...rows].join('\n')
  }
}

function none(): WorkCount {
  return { begun: 0, ended: 0, retry: 0, unacknowledged: 0, lost: 0 }
}

/** Tokens of one login, as its client holds them. */
export interface HeldTokens {
  refreshToken: string
  isBusy: boolean
  isAcknowledged: boolean
  readonly code: string
  readonly verifier: string
}

const LIMIT_MS = 120_000
const PAUSE_MS = 200

/** A client of an authorization server, and the browser of its user. Both do what `Retry-After` says. */
export class PatientClient {
  readonly #issuer: string
  readonly #clientId: string

  constructor(issuer: string, clientId: string) {
    this.#issuer = issuer
    this.#clientId = clientId
  }

  /** A whole login. `retry`: the server said so, and the login cannot go on where it was. Rejects when it ends in any other way. */
  async logIn(user: string): Promise<HeldTokens | 'retry'> {
    const told = { retry: false }
    try {
      const verifier = randomBytes(32).toString('base64url')
      const url = new URL(`${this.#issuer}/oauth/authorize`)
      const query = {
        ...{ response_type: 'code', client_id: this.#clientId, redirect_uri: REDIRECT_URI, scope: 'openid mcp', state: 'x' },
        ...{ resource: `${this.#issuer}/mcp`, code_challenge_method: 'S256' },
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      }
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      const landed = await signIn(url, { user, redirectUri: REDIRECT_URI, fetch: (to, init) => patiently(to, init, told) })
      const code = landed.searchParams.get('code')
      if (landed.searchParams.get('error') === 'temporarily_unavailable') return 'retry'
      if (code === null) throw new Error(`it ended with ${landed.searchParams.get('error')}`)
      return { refreshToken: await this.#redeem({ code, verifier }, told), isBusy: false, isAcknowledged: true, code, verifier }
    } catch (error) {
      if (told.retry) return 'retry'
      throw error
    }
  }

  /** Rejects unless it got the next token, however often an answer says that it should try again. */
  async refresh(held: HeldTokens): Promise<void> {
    held.refreshToken = await this.#token({ grant_type: 'refresh_token', refresh_token: held.refreshToken }, { retry: false })
  }

  /** The status of the answer to a code that was used before. */
  async replay({ code, verifier }: HeldTokens): Promise<number> {
    return (await this.#post({ ...codeForm(code, verifier), client_id: this.#clientId }, { retry: false })).status
  }

  #redeem({ code, verifier }: { code: string; verifier: string }, told: { retry: boolean }): Promise<string> {
    return this.#token(codeForm(code, verifier), told)
  }

  async #token(form: Readonly<Record<string, string>>, told: { retry: boolean }): Promise<string> {
    const answer = await this.#post({ ...form, client_id: this.#clientId }, told)
    const body = (await answer.json()) as Record<string, string>
    const { refresh_token: token } = body
    if (answer.status !== 200 || token === undefined) throw new Error(`the token endpoint answered ${answer.status} ${body['error']}`)
    return token
  }

  #post(form: Readonly<Record<string, string>>, told: { retry: boolean }): Promise<Response> {
    return patiently(new URL(`${this.#issuer}/oauth/token`), { method: 'POST', body: new URLSearchParams(form) }, told)
  }
}

function codeForm(code: string, verifier: string): Record<string, string> {
  return { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: REDIRECT_URI }
}

/** Sends a request again as long as the answer says so. */
async function patiently(url: URL, init: RequestInit, told: { retry: boolean }): Promise<Response> {
  const signal = AbortSignal.timeout(LIMIT_MS)
  for (;;) {
    const answer = await fetch(url, { ...init, signal })
    if (answer.status !== 503 || answer.headers.get('retry-after') === null) return answer
    told.retry = true
    await answer.body?.cancel()
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}
