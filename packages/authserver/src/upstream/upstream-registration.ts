import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
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
}

const KIND = 'registration'
/** A registration that no replica has read for so long is forgotten. */
const KEPT_MS = 400 * 24 * 3_600_000
/** How soon a replica sees that another one has renewed. */
const FRESH_MS = 60_000
const LOCK_MS = 30_000
const WAIT_MS = 10_000
/** Renewed from here on. */
const EARLY_SHARE = 0.8

/** Registers this server at a provider (RFC 7591): once for all replicas and restarts, and again before the secret ends. */
export class UpstreamRegistration {
  readonly #options: UpstreamRegistrationOptions
  readonly #id: string
  readonly #flights = createSingleFlight<'', Registration>()
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
    if (known !== undefined && clock.monotonic() - known.readAt < FRESH_MS && !this.#isDue(known.registration)) return known.registration
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
      if (stored !== undefined && !this.#isDue(stored)) return stored
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
      const made = (stored && (await this.#renewed(stored))) ?? (await this.#registered())
      await this.#options.store.put(KIND, this.#id, { value: JSON.parse(JSON.stringify(made)) as JsonObject, ttlMs: KEPT_MS })
      this.#options.onRegistered(this.#options.name, stored === undefined ? 'registered' : 'renewed')
      return made
    } catch (error) {
      if (stored === undefined || this.#isOver(stored)) throw error
      return stored // it is good for a while, and the next login tries again
    }
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
  async #renewed({ manageUrl, manageToken, clientId }: Registration): Promise<Registration | undefined> {
    if (manageUrl === undefined || manageToken === undefined) return undefined
    const json = { ...this.#metadata(), client_id: clientId }
    const headers = ['Authorization', `Bearer ${manageToken}`]
    try {
      const answer = await this.#options.http.json({ url: manageUrl, method: 'PUT', json, headers })
      return this.#read({ registration_client_uri: manageUrl, registration_access_token: manageToken, ...answer })
    } catch {
      return undefined // a new registration says what is wrong
    }
  }

  async #registered(): Promise<Registration> {
    const { config, http } = this.#options
    const url = config.registration_endpoint ?? (await this.#discovered(config.discovery_url ?? ''))
    const token = await this.#initialToken()
    const headers = token === undefined ? [] : ['Authorization', `Bearer ${token}`]
    try {
      return this.#read(await http.json({ url, method: 'POST', json: this.#metadata(), headers }))
    } catch (error) {
      if (!(error instanceof UpstreamRefused)) throw error
      throw new ThvError(
        'auth_provider_unavailable',
        `identity provider ${this.#options.name}: it refuses the registration: ${error.message}`,
      )
    }
  }

  async #discovered(url: string): Promise<string> {
    const { http, name } = this.#options
    const endpoint = textAt(await http.json({ url }), 'registration_endpoint')
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
