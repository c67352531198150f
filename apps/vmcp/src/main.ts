import { isMainThread } from 'node:worker_threads'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { createLifecycle, type Lifecycle } from '@thv/kernel/lifecycle'
import { runMain } from '@thv/kernel/process-signals'
import { RUN_CONFIG_EXIT_CODE } from '@thv/runconfig/run-config-errors'
import { buildProgram } from './program.ts'

/** Below the 75 s of grace that the operator gives the pod. */
const DRAIN_MS = 65_000

const print = (line: string) => console.error(`vmcp: ${line}`)

/** The bundle has one entry, for both threads. The policy engine is loaded in the worker only. */
if (isMainThread) await runMain(run, { lifecycle: createLifecycle({ drainMs: DRAIN_MS }), printError: print })
else (await import('@thv/authz/load/policy-worker')).runPolicyWorker()

async function run(lifecycle: Lifecycle): Promise<number> {
  const workerEntry = new URL(import.meta.url)
  const out = (text: string) => void process.stdout.write(text)
  try {
    await buildProgram({ out, env: process.env, lifecycle, workerEntry }).parseAsync(process.argv)
    return 0
  } catch (error) {
    if (!isThvError(error, 'vmcp_config_invalid') && !isThvError(error, 'vmcp_config_unsupported')) throw error
    print(errorMessage(error))
    return RUN_CONFIG_EXIT_CODE
  }
}
