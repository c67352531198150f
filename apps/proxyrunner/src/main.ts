import { errorMessage } from '@thv/kernel/errors'
import { createLifecycle } from '@thv/kernel/lifecycle'
import { runMain } from '@thv/kernel/process-signals'
import { isRunConfigError, RUN_CONFIG_EXIT_CODE } from '@thv/runconfig/run-config-errors'
import { buildProgram } from './program.ts'

/** Below the 75 s of grace that the operator gives the pod. */
const DRAIN_MS = 65_000

const print = (line: string) => console.error(`thv-proxyrunner: ${line}`)

await runMain(
  async (lifecycle) => {
    try {
      await buildProgram({ out: (text) => void process.stdout.write(text), env: process.env, lifecycle }).parseAsync(process.argv)
      return 0
    } catch (error) {
      if (!isRunConfigError(error)) throw error
      print(errorMessage(error))
      return RUN_CONFIG_EXIT_CODE
    }
  },
  { lifecycle: createLifecycle({ drainMs: DRAIN_MS }), printError: print },
)
