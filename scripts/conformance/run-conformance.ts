import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kubeconfigText } from '@thv/cluster/platform/kubeconfig'
import { startPlatform } from '@thv/cluster/platform/platform'
import { ensureBinaries } from '@thv/testkit/cluster/programs/binaries'
import { run } from '../run.ts'
import { judge, type Outcome } from './judge.ts'
import { LEFT_OUT } from './left-out.ts'

const FOCUS = '\\[sig-api-machinery\\].*\\[Conformance\\]'
/** Pods of the specs that must run do nothing but run. */
const IMAGES = 'images:\n- match: registry.k8s.io/pause:*\n  command: [sleep, infinity]\n'
/** One spec alone waits ten minutes at most for a list to expire. */
const LIMIT_MS = 75 * 60_000

/**
 * Runs the conformance specs of Kubernetes' API machinery, from its own sources, against the local platform. Everything but what LEFT_OUT
 * names must pass. `focus` runs the specs that match it only.
 */
export async function runConformance(focus?: string): Promise<{ readonly code: number; readonly summary: string }> {
  const binaries = await ensureBinaries({ set: 'conformance', log: (line) => console.log(line) })
  const folder = mkdtempSync(join(tmpdir(), 'thv-conformance-'))
  const errors: string[] = []
  const quiet = () => undefined
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data', 'images.yaml'), IMAGES)
  const platform = await startPlatform({
    folder: join(folder, 'data'),
    ownImages: [],
    manifests: [],
    env: { PATH: process.env['PATH'] },
    log: { debug: quiet, info: quiet, warn: quiet, error: (message) => errors.push(message) },
  })
  try {
    const [kubeconfig, report] = [join(folder, 'kubeconfig'), join(folder, 'report.xml')]
    writeFileSync(kubeconfig, kubeconfigText(platform.server), { mode: 0o600 })
    mkdirSync(join(folder, 'work'))
    const suite = await run(
      binaries.path('kubernetes-conformance'),
      suiteArguments({ kubeconfig, report, kubectl: binaries.path('kubectl'), focus }),
      {
        cwd: join(folder, 'work'),
        limitMs: LIMIT_MS,
      },
    )
    const outcome = judge(readReport(report), LEFT_OUT, focus === undefined ? undefined : new RegExp(focus))
    if (errors.length > 0) console.log(`the platform reported ${errors.length} errors, the first: ${errors[0]}`)
    return { code: outcome.problems.length === 0 && suite.code === 0 ? 0 : 1, summary: summaryOf(outcome, suite.seconds) }
  } finally {
    await platform.stop('the suite has ended')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

interface SuiteFiles {
  readonly kubeconfig: string
  readonly report: string
  readonly kubectl: string
  readonly focus: string | undefined
}

function suiteArguments({ kubeconfig, report, kubectl, focus }: SuiteFiles): string[] {
  const skipped = Object.keys(LEFT_OUT).map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return [
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    '--disable-log-dump',
    '--dump-logs-on-failure=false',
    // Several of them would run what any of them matches.
    `--ginkgo.focus=${focus === undefined ? FOCUS : `(${focus}).*\\[Conformance\\]`}`,
    ...skipped.map((name) => `--ginkgo.skip=${name}`),
    `--ginkgo.timeout=${LIMIT_MS / 60_000}m`,
    `--ginkgo.junit-report=${report}`,
    '--ginkgo.no-color',
    '--ginkgo.silence-skips',
  ]
}

function readReport(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // the suite ended before it could write one: nothing has passed
  }
}

function summaryOf({ passed, failed, leftOut, problems }: Outcome, seconds: number): string {
  const counts = `${passed.length} passed, ${failed.length} failed, ${leftOut.length} left out in ${seconds.toFixed(0)} s`
  return [`conformance: ${counts}`, ...problems].join('\n  ')
}
