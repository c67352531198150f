import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createOAuthHttp, isLoopback } from '@thv/auth/client/oauth-http'
import { ServerLogin } from '@thv/auth/client/server-login'
import type { Outbound } from '@thv/http/outbound/outbound'
import { ThvError } from '@thv/kernel/errors'
import type { ProgramEnv } from '../program.ts'
import { createCredentialFile, credentialPath } from './credential-file.ts'

/** Options of `thv login`. */
export interface LoginFlags {
  readonly clientId?: string
  readonly clientSecretFile?: string
  readonly scope?: readonly string[]
  readonly callbackPort?: string
}

export interface AccessOptions extends LoginFlags {
  /** Waits for the user also where no browser can be opened: the address is printed. */
  readonly isAsked?: boolean
}

/** Tokens are sent by https, or to this machine. */
export function mayCarryTokens(url: URL): boolean {
  return url.protocol === 'https:' || isLoopback(url)
}

/** How this user gets into a server. */
export function serverAccess(url: string, options: AccessOptions, { env, outbound }: { env: ProgramEnv; outbound: Outbound }): ServerLogin {
  const { clientId, clientSecretFile, scope, callbackPort, isAsked = false } = options
  const server = new URL(url)
  if (clientSecretFile !== undefined && clientId === undefined) throw new ThvError('usage', '--client-secret-file needs --client-id')
  return new ServerLogin({
    server: server.href,
    http: createOAuthHttp({ outbound, allowLoopback: isLoopback(server) }),
    store: createCredentialFile(credentialPath(env.variables)),
    fixed: clientId === undefined ? undefined : { clientId, clientSecret: secretIn(clientSecretFile, env.cwd) },
    scopes: scope,
    steps:
      env.openBrowser === undefined && !isAsked
        ? undefined
        : { visit: (address) => visit(address, env), clientName: 'thv', callbackPort: portOf(callbackPort) },
  })
}

function visit(address: string, env: ProgramEnv): void {
  env.err(`To log in, open this address in a browser on this machine:\n\n  ${address}\n\n`)
  env.openBrowser?.(address)
}

/** Its value is in no message. */
function secretIn(file: string | undefined, cwd: string): string | undefined {
  if (file === undefined) return undefined
  try {
    const secret = readFileSync(resolve(cwd, file), 'utf8').trim()
    if (secret !== '') return secret
  } catch (cause) {
    throw new ThvError('usage', `--client-secret-file ${JSON.stringify(file)} cannot be read`, { cause })
  }
  throw new ThvError('usage', `--client-secret-file ${JSON.stringify(file)} is empty`)
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new ThvError('usage', `--callback-port must be a port from 1 to 65535, not ${JSON.stringify(text)}`)
  return port
}
