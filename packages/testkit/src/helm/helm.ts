import { execFile } from 'node:child_process'
import { ensureHelm } from './helm-binary.ts'

/** Output of helm; a wrong exit code is a result like any other, because tests ask for it. */
export interface HelmResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Helm {
  run(args: readonly string[]): Promise<HelmResult>
  /** `helm template`, or throws with what helm said. */
  template(release: Release): Promise<string>
}

export interface Release {
  readonly name: string
  readonly chart: string
  readonly namespace: string
  /** Files with values, later ones win. */
  readonly values?: readonly string[]
  /** Each as for `--set`. */
  readonly set?: readonly string[]
}

/** Over what `--wait --timeout` of a command asks for: helm then says itself what it waited for. */
const runLimitMs = 280_000
const outputLimit = 32 * 1024 * 1024

/** Finds or builds helm. */
export async function openHelm(): Promise<Helm> {
  const path = await ensureHelm({ log: (line) => console.error(line) })
  const run = (args: readonly string[]) => runHelm(path, args)
  return {
    run,
    template: async (release) => {
      const { code, stdout, stderr } = await run(templateArguments(release))
      if (code !== 0) throw new Error(`helm template failed (${code}): ${stderr}`)
      return stdout
    },
  }
}

function templateArguments({ name, chart, namespace, values = [], set = [] }: Release): string[] {
  return ['template', name, chart, '--namespace', namespace, ...values.flatMap((f) => ['--values', f]), ...set.flatMap((s) => ['--set', s])]
}

function runHelm(path: string, args: readonly string[]): Promise<HelmResult> {
  return new Promise((resolve, reject) => {
    execFile(path, args, { timeout: runLimitMs, maxBuffer: outputLimit, encoding: 'utf8' }, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code
      if (typeof code === 'number') resolve({ code, stdout, stderr })
      else reject(error ?? new Error('helm ended without a code'))
    })
  })
}
