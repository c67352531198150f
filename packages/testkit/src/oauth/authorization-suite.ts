import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { freePort } from '../cluster/process/start-on-port.ts'
import { signIn } from '../oidc/sign-in.ts'

export interface AuthorizationSuiteOptions {
  readonly issuer: string
  /** That tokens are for. */
  readonly resource: string
  /** Logs in at the provider behind the server. */
  readonly user: string
}

export interface AuthorizationReport {
  readonly exitCode: number | null
  readonly output: string
}

/** Lines that the suite prints of a server that passes both of its scenarios. */
export const AUTHORIZATION_PASSED: readonly string[] = [
  '✓ authorization-server-metadata-endpoint: 1 passed, 0 failed',
  '✓ authorization-code-grant: 1 passed, 0 failed',
]

const SUITE = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js')
/** Far above what it takes. */
const LIMIT_MS = 120_000

/** Runs `conformance authorization` of the official suite, and is the browser and its user. */
export async function runAuthorizationSuite({ issuer, resource, user }: AuthorizationSuiteOptions): Promise<AuthorizationReport> {
  const port = await freePort()
  const redirectUri = `http://127.0.0.1:${port}/callback`
  const registered = await fetch(`${issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'suite', redirect_uris: [redirectUri] }),
  })
  const { client_id: clientId = '' } = (await registered.json()) as { client_id?: string }
  const args = ['authorization', '--url', issuer, '--client-id', clientId, '--resource', resource, '-p', String(port)]
  const child = spawn(process.execPath, [SUITE, ...args], { signal: AbortSignal.timeout(LIMIT_MS), killSignal: 'SIGKILL' })
  let output = ''
  let visit: Promise<unknown> | undefined
  const read = (chunk: Buffer) => {
    output += chunk.toString()
    const [url] = new RegExp(`${issuer}/oauth/authorize\\?\\S+`).exec(output) ?? []
    if (url === undefined || !output.includes('Callback server started')) return
    visit ??= signIn(url, { user, redirectUri }).then((landed) => fetch(landed))
  }
  child.stdout.on('data', read)
  child.stderr.on('data', read)
  const exitCode = await new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject))
  await visit
  return { exitCode, output }
}
