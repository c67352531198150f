import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConformanceCheck, type ConformanceReport, readReport } from './conformance-report.ts'

export interface ConformanceOptions {
  /** Plain http on a loopback name, without authentication. */
  readonly url: string
  /** Exactly what a revision requires. Not together with the three that follow. */
  readonly requirements?: '2025-11-25' | '2026-07-28'
  readonly specVersion?: string
  readonly suite?: 'active' | 'all' | 'draft' | 'pending'
  readonly scenario?: string
  /** A file of scenarios that are known to fail; it decides the exit code, not the tallies. */
  readonly expectedFailures?: string
  /** For the whole run. Default five minutes. */
  readonly limitMs?: number
}

const SCENARIO_FOLDER = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/

/** Lets the official conformance suite judge the server at `url`. */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-conformance-'))
  try {
    const { output, exitCode } = await runSuite(argumentsFor(options, folder), options.limitMs ?? 300_000)
    return readReport({ output, exitCode, files: await readChecks(folder) })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function argumentsFor(options: ConformanceOptions, folder: string): string[] {
  const { url, requirements, specVersion, suite, scenario, expectedFailures } = options
  const given = { requirements, 'spec-version': specVersion, suite, scenario, 'expected-failures': expectedFailures }
  const flags = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]))
  return ['server', '--url', url, '-o', folder, ...flags]
}

async function runSuite(args: readonly string[], limitMs: number): Promise<{ output: string; exitCode: number }> {
  const program = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js')
  const signal = AbortSignal.timeout(limitMs)
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL' })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', (error) => reject(signal.aborted ? new Error(`The conformance suite took longer than ${limitMs} ms`) : error))
    child.once('close', (code) => resolve(code ?? -1))
  })
  return { output: Buffer.concat(chunks).toString('utf8'), exitCode }
}

/** A scenario that broke off left a folder without a file. */
async function readChecks(folder: string): Promise<Map<string, ConformanceCheck[]>> {
  const checks = new Map<string, ConformanceCheck[]>()
  for (const name of (await readdir(folder)).sort()) {
    const scenario = SCENARIO_FOLDER.exec(name)?.[1]
    const files = scenario === undefined ? [] : await readdir(join(folder, name))
    if (scenario === undefined || !files.includes('checks.json')) continue
    checks.set(scenario, JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8')) as ConformanceCheck[])
  }
  return checks
}
