import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runThv, type ThvRun } from './run-thv.ts'

/*
 * The program that the official conformance suite starts with the URL of its mock server: `thv` logs in where it is asked to and calls the tool
 * that every authorization scenario has. The suite judges the traffic, not the exit code.
 */

const CLIENT_DOCUMENT = 'https://conformance-test.local/client-metadata.json'

const url = process.argv.at(-1) ?? ''
const context: Readonly<Record<string, string | undefined>> = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}')
const home = mkdtempSync(join(tmpdir(), 'thv-login-'))

/** The mock sends every visitor straight back. */
async function visit(address: string): Promise<void> {
  const answer = await fetch(address, { redirect: 'manual' })
  const location = answer.headers.get('location')
  if (location !== null) await fetch(location)
}

const env = {
  variables: { HOME: home },
  cwd: home,
  openBrowser: (address: string) => void visit(address).catch((error: unknown) => console.error(error)),
}

/** The client ID of a scenario that has one. */
function clientFlags(): string[] {
  if (context['client_id'] !== undefined && context['client_secret'] !== undefined) {
    writeFileSync(join(home, 'secret'), context['client_secret'])
    return ['--client-id', context['client_id'], '--client-secret-file', 'secret']
  }
  return process.env['MCP_CONFORMANCE_SCENARIO'] === 'auth/basic-cimd' ? ['--client-id', CLIENT_DOCUMENT] : []
}

function report({ out, err, error }: ThvRun): void {
  console.error(out, err, error?.message ?? '')
  if (error !== undefined) process.exitCode = 1
}

const flags = clientFlags()
try {
  if (flags.length > 0) report(await runThv(['login', url, ...flags], env))
  report(await runThv(['call', url, 'test-tool'], env))
} finally {
  rmSync(home, { recursive: true })
}
