import { errorMessage } from '@thv/kernel/errors'
import { createLifecycle, type Lifecycle } from '@thv/kernel/lifecycle'
import { type ProcessLike, runMain } from '@thv/kernel/process-signals'
import { isRunConfigError, RUN_CONFIG_EXIT_CODE } from '@thv/runconfig/run-config-errors'
import { buildProgram, type ProgramEnv } from './program.ts'

export interface RunProgramOptions extends Omit<ProgramEnv, 'lifecycle'> {
  /** As in `process.argv`. */
  readonly argv: readonly string[]
  /** Takes a text with its line feed. */
  readonly err: (text: string) => void
  /** Its signals and its exit. The process unless given. */
  readonly proc?: ProcessLike
}

/** Below the 75 s of grace that the operator gives the pod. */
const DRAIN_MS = 65_000

/** One runner from its arguments to its exit code. */
export async function runProgram({ argv, err, proc, ...env }: RunProgramOptions): Promise<void> {
  const print = (line: string) => err(`thv-proxyrunner: ${line}\n`)
  const main = async (lifecycle: Lifecycle): Promise<number> => {
    try {
      await buildProgram({ ...env, lifecycle }).parseAsync(argv)
      return 0
    } catch (error) {
      if (!isRunConfigError(error)) throw error
      print(errorMessage(error))
      return RUN_CONFIG_EXIT_CODE
    }
  }
  await runMain(main, { lifecycle: createLifecycle({ drainMs: DRAIN_MS }), printError: print, ...(proc && { proc }) })
}
