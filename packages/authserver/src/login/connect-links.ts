import { randomBytes } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { isObject } from '@thv/kernel/json'
import type { AuthServerConfig } from '@thv/runconfig/auth-server-config'
import type { ServerSecrets } from '../keys/server-secrets.ts'
import { loginBase, PATHS } from '../paths/server-paths.ts'

/** Lets one user connect one provider for one session of a client. */
export interface ConnectLink {
  /** For its one use. */
  readonly id: string
  /** The user, as in `sub` of tokens. */
  readonly account: string
  /** The session that may use the provider then. */
  readonly family: string
  readonly provider: string
  /** Epoch seconds. */
  readonly until: number
}

export interface ConnectLinks {
  /** The address that the user opens. */
  url(link: Pick<ConnectLink, 'account' | 'family' | 'provider'>): string
  /** Undefined: altered, expired, or of another provider. */
  open(sealed: string, provider: string): ConnectLink | undefined
}

export const LINK_SECONDS = 600
const MAX_LINK = 2_000

/** The link is sealed: it names the user and the session, which no reader can change or see. */
export function createConnectLinks(config: AuthServerConfig, secrets: ServerSecrets, clock: Clock): ConnectLinks {
  const cipher = secrets.cipher('connect links')
  const now = () => Math.floor(clock.now() / 1_000)
  const base = loginBase(config).replace(/\/$/, '')
  return {
    url({ account, family, provider }) {
      const id = randomBytes(16).toString('base64url')
      const link: ConnectLink = { id, account, family, provider, until: now() + LINK_SECONDS }
      return `${base}${PATHS.connect}${provider}?link=${cipher.seal(JSON.stringify(link), provider).toString('base64url')}`
    },
    open(sealed, provider) {
      if (sealed === '' || sealed.length > MAX_LINK || !/^[\w-]+$/.test(sealed)) return undefined
      const text = cipher.open(Buffer.from(sealed, 'base64url'), provider)
      const value: unknown = text === undefined ? undefined : JSON.parse(text)
      if (!isObject(value)) return undefined
      const link = value as unknown as ConnectLink
      return link.provider === provider && link.until > now() ? link : undefined
    },
  }
}
