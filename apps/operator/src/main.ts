import { createLifecycle } from '@thv/kernel/lifecycle'
import { runMain } from '@thv/kernel/process-signals'
import { buildProgram } from './program.ts'

await runMain(
  (lifecycle) => buildProgram({ out: (text) => void process.stdout.write(text), env: process.env, lifecycle }).parseAsync(process.argv),
  { lifecycle: createLifecycle(), printError: (line) => console.error(`thv-operator: ${line}`) },
)
