import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { isThvError, ThvError } from '@thv/kernel/errors'
import type { JsonObject } from '@thv/kernel/json'
import { mountedPath } from '@thv/kernel/mounted-path'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { UpstreamRegistrationConfig } from '@thv/runconfig/auth-server-config'
import type { AuthStore } from '@thv/store/auth/auth-store'
import type { Env } from './upstream-client.ts'
import { textAt, type UpstreamHttp } from './upstream-http.ts'
import { UpstreamRefused } from './upstream-refused.ts'

/** The client that we are at a provider. */
export interface UpstreamClient {
  readonly clientId: string
  readonly secret: string | undefined
  readonly method: 'basic' | 'post'
}

export interface UpstreamRegistrationOptions {
  readonly name: string
  readonly config: UpstreamRegistrationConfig
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly http: UpstreamHttp
  readonly store: AuthStore
  readonly env: Env
  readonly clock: Clock
  readonly signal: AbortSignal
  /** `renewed`: with another secret. */
  readonly onRegistered: (provider: string, what: 'registered' | 'renewed') => void
}

/** As stored. Times are epoch milliseconds; 0: without end. */
interface Registration extends UpstreamClient {
  readonly issuedAt: number
  readonly expiresAt: number
  /** RFC 7592 §3: where the registration can be changed. */
  readonly manageUrl: string | undefined
  readonly manageToken: string | undefined
  /** When the record was written. */
  readonly storedAt: number
}

const KIND = 'registration'
/** A registration that no replica has read for so long is forgotten: one that is in use is written again in time. */
const KEPT_MS = 400 * 24 * 3_600_000
const WRITTEN_AGAIN_MS = KEPT_MS / 4
/** Between attempts of one replica. Logins in between fail at once, or go on with the registration that there is. */
const RETRY = { baseMs: 1_000, maxMs: 300_000 }
/** How soon a replica sees that another one has renewed. */
const FRESH_MS = 60_000
const LOCK_MS = 30_000
/** For all requests of one attempt: shorter than the lock lives. */
const ATTEMPT_MS = 20_000
const WAIT_MS = 10_000
/** Renewed from here on. */
const EARLY_SHARE = 0.8

/** Registers this server at a provider (RFC 7591): once for all replicas and restarts, and again before the secret ends. */
export class UpstreamRegistration {
  readonly #options: UpstreamRegistrationOptions
  readonly #id: string
  readonly #flights = createSingleFlight<'', Registration>()
  readonly #backoff = createBackoff(RETRY)
  /** The last attempt failed, and the next one is not made before. */
  #failed: { readonly error: unknown; readonly until: number } | undefined
  #known: { readonly registration: Registration; readonly readAt: number } | undefined

  constructor(options: UpstreamRegistrationOptions) {
    const { config, redirectUri, scopes } = options
    this.#options = options
    const place = config.registration_endpoint ?? config.discovery_url
    this.#id = createHash('sha256')
      .update(JSON.stringify([place, redirectUri, scopes]))
      .digest('base64url')
  }

  /** Undefined until the first `client()`. */
  get current(): UpstreamClient | undefined {
    return this.#known?.registration
  }

  /** Rejects with `auth_provider_unavailable` or `store_unavailable`. */
  async client(): Promise<UpstreamClient> {
    const { clock } = this.#options
    const known = this.#known
    const isFresh = known !== undefined && clock.monotonic() - known.readAt < FRESH_MS
    if (isFresh && (!this.#isDue(known.registration) || this.#isWaiting(known.registration))) return known.registration
    return await this.#flights.run('', async () => {
      const registration = await this.#load()
      this.#known = { registration, readAt: clock.monotonic() }
      return registration
    })
  }

  async #load(): Promise<Registration> {
    const { store, clock, signal, name } = this.#options
    const deadline = clock.monotonic() + WAIT_MS
    for (;;) {
      const stored = await this.#stored()
      if (stored !== undefined && (!this.#isDue(stored) || this.#isWaiting(stored))) return await this.#kept(stored)
      if (this.#failed !== undefined && clock.monotonic() < this.#failed.until) throw this.#failed.error
      const lock = await store.lock(`${KIND}:${this.#id}`, LOCK_MS)
      if (lock !== undefined) {
        try {
          return await this.#made(await this.#stored())
        } finally {
          await lock[Symbol.asyncDispose]()
        }
      }
      if (stored !== undefined && !this.#isOver(stored)) return stored // another replica renews it
      if (clock.monotonic() >= deadline)
        throw new ThvError('auth_provider_unavailable', `identity provider ${name}: another replica registers and takes long`)
      await clock.sleep(100 + Math.random() * 200, signal)
    }
  }

  async #made(stored: Registration | undefined): Promise<Registration> {
    if (stored !== undefined && !this.#isDue(stored)) return stored
    try {
      const made = await this.#attempt(stored)
      await this.#write(made)
      this.#backoff.reset()
      this.#failed = undefined
      this.#options.onRegistered(this.#options.name, stored === undefined ? 'registered' : 'renewed')
      return made
    } catch (error) {
      this.#failed = { error, until: this.#options.clock.monotonic() + this.#backoff.next() }
      if (stored === undefined || this.#isOver(stored)) throw error
      return stored // it is good for a while, and a later login tries again
    }
  }

  async #attempt(stored: Registration | undefined): Promise<Registration> {
    const { clock, signal, name } = this.#options
    const limit = { clock, timeoutMs: ATTEMPT_MS, what: 'the registration', signals: [signal] }
    try {
      return await withTimeLimit(limit, async (within) => (stored && (await this.#renewed(stored, within))) ?? this.#registered(within))
    } catch (error) {
      if (!isThvError(error, 'timeout')) throw error
      throw new ThvError('auth_provider_unavailable', `identity provider ${name}: ${error.message}`, { cause: error })
    }
  }

  /** The provider did not renew it a moment ago, and it is still good. */
  #isWaiting(registration: Registration): boolean {
    return !this.#isOver(registration) && this.#failed !== undefined && this.#options.clock.monotonic() < this.#failed.until
  }

  /** Written again from time to time, so that it does not end as long as it is used. */
  async #kept(stored: Registration): Promise<Registration> {
    const { clock } = this.#options
    if (clock.now() - stored.storedAt >= WRITTEN_AGAIN_MS) await this.#write({ ...stored, storedAt: clock.now() })
    return stored
  }

  async #write(registration: Registration): Promise<void> {
    const value = JSON.parse(JSON.stringify(registration)) as JsonObject
    await this.#options.store.put(KIND, this.#id, { value, ttlMs: KEPT_MS })
  }

  async #stored(): Promise<Registration | undefined> {
    return (await this.#options.store.get(KIND, this.#id))?.value as Registration | undefined
  }

  #isDue({ issuedAt, expiresAt }: Registration): boolean {
    return expiresAt !== 0 && this.#options.clock.now() >= issuedAt + (expiresAt - issuedAt) * EARLY_SHARE
  }

  #isOver({ expiresAt }: Registration): boolean {
    return expiresAt !== 0 && this.#options.clock.now() >= expiresAt
  }

  /** RFC 7592 §2.2. Undefined: the provider manages no registrations, or does not know this one any more. */
  async #renewed({ manageUrl, manageToken, clientId }: Registration, within: AbortSignal): Promise<Registration | undefined> {
    if (manageUrl === undefined || manageToken === undefined) return undefined
    const json = { ...this.#metadata(), client_id: clientId }
    const headers = ['Authorization', `Bearer ${manageToken}`]
    try {
      const answer = await this.#options.http.json({ url: manageUrl, method: 'PUT', json, headers }, within)
      return this.#read({ registration_client_uri: manageUrl, registration_access_token: manageToken, ...answer })
    } catch {
      return undefined // a new registration says what is wrong
    }
  }

  async #registered(within: AbortSignal): Promise<Registration> {
    const { config, http } = this.#options
    const url = config.registration_endpoint ?? (await this.#discovered(config.discovery_url ?? '', within))
    const token = await this.#initialToken()
    const headers = token === undefined ? [] : ['Authorization', `Bearer ${token}`]
    try {
      return this.#read(await http.json({ url, method: 'POST', json: this.#metadata(), headers }, within))
    } catch (error) {
      if (!(error instanceof UpstreamRefused)) throw error
      throw new ThvError(
        'auth_provider_unavailable',
        `identity provider ${this.#options.name}: it refuses the registration: ${error.message}`,
      )
    }
  }

  async #discovered(url: string, within: AbortSignal): Promise<string> {
    const { http, name } = this.#options
    const endpoint = textAt(await http.json({ url }, within), 'registration_endpoint')
    if (endpoint === undefined || !URL.canParse(endpoint))
      throw new ThvError('auth_provider_unavailable', `identity provider ${name}: its document names no registration_endpoint`)
    return endpoint
  }

  #metadata(): Readonly<Record<string, unknown>> {
    const { config, redirectUri, scopes } = this.#options
    return {
      client_name: 'ToolHive',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      ...(config.software_id !== undefined && { software_id: config.software_id }),
      ...(config.software_statement !== undefined && { software_statement: config.software_statement }),
    }
  }

  #read(answer: Readonly<Record<string, unknown>>): Registration {
    const { clock, name } = this.#options
    const clientId = textAt(answer, 'client_id')
    if (clientId === undefined)
      throw new ThvError('auth_provider_unavailable', `identity provider ${name}: its registration has no client_id`)
    const seconds = Number(textAt(answer, 'client_secret_expires_at') ?? 0)
    const hasEnd = Number.isFinite(seconds) && seconds > 0
    return {
      clientId,
      secret: textAt(answer, 'client_secret'),
      method: textAt(answer, 'token_endpoint_auth_method') === 'client_secret_basic' ? 'basic' : 'post',
      issuedAt: clock.now(),
      storedAt: clock.now(),
      expiresAt: hasEnd ? seconds * 1_000 : 0,
      manageUrl: textAt(answer, 'registration_client_uri'),
      manageToken: textAt(answer, 'registration_access_token'),
    }
  }

  async #initialToken(): Promise<string | undefined> {
    const { initial_access_token_file: file, initial_access_token_env_var: variable } = this.#options.config
    if (file !== undefined) return (await readFile(mountedPath(file), 'utf8')).trim()
    return variable === undefined ? undefined : this.#options.env[variable]
  }
}
