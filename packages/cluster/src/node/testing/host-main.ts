import { runMain } from '@thv/kernel/process-signals'
import { programEnv } from '@thv/kernel/program-scope'
import type { HostedProgram } from '@thv/programs/shared-process/hosted-program'
import { runHost } from '@thv/programs/shared-process/run-host'

// A process that runs several programs, each with the fault that its argument names.

const FAULTS: Readonly<Record<string, (program: HostedProgram) => void>> = {
  none: () => {},
  linger: () => {}, // its shutdown does not end
  throw: () => setTimeout(() => throwIt('thrown'), 100),
  reject: () => void Promise.reject(new Error('rejected')),
  exit: (program) => setTimeout(() => program.exit(7), 100),
  hang: () => {
    for (;;);
  },
  leak: () => {
    const kept: unknown[] = []
    setInterval(() => kept.push(Array.from({ length: 200_000 }, (_, index) => ({ index }))), 1)
  },
  flood: (program) => {
    for (let line = 0; line < 20_000; line++) program.writeError(`${line} ${'x'.repeat(100)}\n`)
    setTimeout(() => program.writeError('the end\n'), 100)
  },
}

function throwIt(message: string): never {
  throw new Error(message)
}

async function main(program: HostedProgram): Promise<void> {
  const [fault = 'none'] = program.args
  await runMain(
    async ({ signal }) => {
      program.writeError(`pid ${process.pid} ${programEnv()['THV_NAME']} ${program.cwd}\n`)
      FAULTS[fault]?.(program)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      program.writeError('stopping\n')
      if (fault === 'linger') await new Promise(() => {})
    },
    { proc: program, printError: (line) => program.writeError(`${line}\n`) },
  )
}

await runHost({ main, input: process.stdin, write: (line) => void process.stdout.write(line) })
process.exit(0)
