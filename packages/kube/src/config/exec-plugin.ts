import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { createSecureContext } from 'node:tls'
import type { Clock } from '@thv/kernel/clock'
import { type ErrorCode, ThvError } from '@thv/kernel/errors'
import { isTokenText } from '../client/connection.ts'
import { isRecord } from '../client/response-body.ts'
import { codeOf } from '../client/unreachable.ts'

export const EXEC_API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const
export type ExecApiVersion = (typeof EXEC_API_VERSIONS)[number]

/** `users[].user.exec` of a kubeconfig. */
export interface ExecPlugin {
  readonly apiVersion: ExecApiVersion
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly installHint?: string | undefined
  /** Facts about the cluster that the plugin receives if it asks for them. */
  readonly cluster?: Readonly<Record<string, unknown>> | undefined
}

export interface ExecRun {
  /** Of this process; the plugin's own variables are added. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Gives it our terminal: it may ask for a password or show an address to visit. */
  readonly interactive: boolean
  readonly timeoutMs: number
  readonly clock: Clock
}

export interface ExecCredential {
  readonly token: string | undefined
  readonly certificate: { readonly cert: string; readonly key: string } | undefined
  /** Epoch milliseconds. */
  readonly expiresAt: number | undefined
}

const MAX_OUTPUT = 1 << 20
const KILL_GRACE_MS = 2_000

/**
 * Runs the plugin once. What it prints, and its arguments, are in no error: they may be secret. Its standard error is shown only where
 * there is a terminal.
 */
export async function runExecPlugin(plugin: ExecPlugin, run: ExecRun): Promise<ExecCredential> {
  const info = {
    kind: 'ExecCredential',
    apiVersion: plugin.apiVersion,
    spec: { interactive: run.interactive, ...(plugin.cluster && { cluster: plugin.cluster }) },
  }
  const child = spawn(plugin.command, plugin.args, {
    env: { ...run.env, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    stdio: [run.interactive ? 'inherit' : 'ignore', 'pipe', run.interactive ? 'inherit' : 'ignore'],
    windowsHide: true,
  })
  return parseCredential(plugin, await outputOf(child, plugin, run))
}

function outputOf(child: ChildProcessByStdio<null, Readable, null>, plugin: ExecPlugin, { clock, timeoutMs }: ExecRun): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (then: () => void) => {
      timer.cancel()
      then()
    }
    /** Its children may hold the pipe open, so the end of that is not awaited. */
    const giveUp = (problem: string) => {
      settle(() => reject(failure(plugin, problem)))
      child.stdout.destroy()
      child.kill('SIGTERM')
      clock.setTimer(KILL_GRACE_MS, () => child.kill('SIGKILL'))
    }
    const timer = clock.setTimer(timeoutMs, () => giveUp(`has not ended within ${timeoutMs} ms`))
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_OUTPUT) giveUp(`printed more than ${MAX_OUTPUT} bytes`)
      else chunks.push(chunk)
    })
    child.on('error', (error) => settle(() => reject(startFailure(plugin, error))))
    child.on('close', (code, signal) => {
      if (code === 0) settle(() => resolve(Buffer.concat(chunks).toString('utf8')))
      else settle(() => reject(failure(plugin, code === null ? `was ended by ${signal}` : `ended with code ${code}`)))
    })
  })
}

function startFailure(plugin: ExecPlugin, error: Error): ThvError {
  const code = codeOf(error)
  if (code !== 'ENOENT') return failure(plugin, `could not be started (${code ?? 'unknown'})`)
  const hint = plugin.installHint?.trim().slice(0, 1_000)
  return failure(plugin, `is not installed${hint ? `. ${hint}` : ''}`)
}

function parseCredential(plugin: ExecPlugin, text: string): ExecCredential {
  const document = parseJson(plugin, text)
  if (document.kind !== 'ExecCredential') throw failure(plugin, 'did not print an ExecCredential')
  if (document.apiVersion !== plugin.apiVersion) {
    throw failure(plugin, `answered in another apiVersion than ${plugin.apiVersion}, which the kubeconfig asks for`)
  }
  const status = isRecord(document.status) ? document.status : {}
  const token = textOf(plugin, status, 'token')
  const cert = textOf(plugin, status, 'clientCertificateData')
  const key = textOf(plugin, status, 'clientKeyData')
  if (token !== undefined && !isTokenText(token)) throw failure(plugin, 'gave a token with characters that no token has')
  if ((cert === undefined) !== (key === undefined)) throw failure(plugin, 'gave a certificate without its key, or the other way round')
  if (token === undefined && cert === undefined) throw failure(plugin, 'gave neither a token nor a certificate')
  const certificate = cert === undefined || key === undefined ? undefined : checkPair(plugin, { cert, key })
  return { token, certificate, expiresAt: expiryOf(plugin, textOf(plugin, status, 'expirationTimestamp')) }
}

function parseJson(plugin: ExecPlugin, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch {
    // told below, without the parser's message: it quotes the text
  }
  throw failure(plugin, 'did not print a JSON object')
}

/** An empty string means nothing, as in a kubeconfig. */
function textOf(plugin: ExecPlugin, status: Record<string, unknown>, name: string): string | undefined {
  const value = status[name] ?? ''
  if (typeof value !== 'string') throw failure(plugin, `gave a ${name} that is no text`)
  return value === '' ? undefined : value
}

function checkPair(plugin: ExecPlugin, pair: { cert: string; key: string }): { cert: string; key: string } {
  try {
    createSecureContext(pair)
    return pair
  } catch (error) {
    throw failure(plugin, `gave a certificate or key that cannot be used (${codeOf(error) ?? 'unknown'})`)
  }
}

function expiryOf(plugin: ExecPlugin, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = Date.parse(text)
  if (!/^\d{4}-\d\d-\d\dT/.test(text) || Number.isNaN(time)) throw failure(plugin, 'gave an expirationTimestamp that is no time')
  return time
}

const CODE: ErrorCode = 'exec_credential_failed'

function failure({ command }: ExecPlugin, problem: string): ThvError {
  return new ThvError(CODE, `credential plugin ${JSON.stringify(command)} ${problem}`)
}
