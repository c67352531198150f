import { type MeasuredProcess, startMeasured } from '../proxy/measured-process.ts'

export interface BareSubject extends AsyncDisposable {
  readonly origin: string
  readonly process: MeasuredProcess
}

/** The server of constant answers, running. */
export async function startConstant(): Promise<BareSubject> {
  const child = await startMeasured({
    script: 'bench/registry/bare.ts',
    nodeArgs: process.env['BENCH_CPU_PROF'] ? ['--cpu-prof', '--cpu-prof-dir', process.env['BENCH_CPU_PROF']] : [],
  })
  const [, url = ''] = await child.line(/^listening (http\S+)/)
  return { origin: new URL(url).origin, process: child, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() }
}
