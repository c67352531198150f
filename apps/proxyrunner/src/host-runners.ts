import type { HostedProgram } from '@thv/programs/shared-process/hosted-program'
import { runHost } from '@thv/programs/shared-process/run-host'
import { sharedMemoryRelease } from '@thv/telemetry/process-metrics'
import { runProgram } from './run-program.ts'

/** `thv-proxyrunner host`: the runners of several pods of the local platform in this process (ADR 0028), until the platform closes the input. */
export async function hostRunners(workerEntry: URL): Promise<void> {
  const closing = new AbortController()
  const addMemoryRelease = sharedMemoryRelease(closing.signal)
  const main = (program: HostedProgram) =>
    runProgram({
      argv: ['node', 'thv-proxyrunner', ...program.args],
      env: program.env,
      out: (text) => void program.writeOutput(text),
      err: (text) => program.writeError(text),
      writeLog: (line) => program.writeError(line),
      proc: program,
      workerEntry,
      addMemoryRelease,
    })
  await runHost({ main, input: process.stdin, write: (line) => void process.stdout.write(line) })
  closing.abort()
}
