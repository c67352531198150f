import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

export interface RunResult {
  code: number
  output: string
  seconds: number
}

/** Runs a command of the project to its end. Its output is kept, and shown as it comes unless `quiet`. */
export function run(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; quiet?: boolean; cwd?: string; limitMs?: number } = {},
): Promise<RunResult> {
  const started = performance.now()
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? ROOT,
      env: { ...process.env, PATH: `${ROOT}node_modules/.bin:${process.env['PATH'] ?? ''}`, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    const take = (stream: NodeJS.WriteStream) => (chunk: Buffer) => {
      output += chunk.toString()
      if (!options.quiet) stream.write(chunk)
    }
    child.stdout.on('data', take(process.stdout))
    child.stderr.on('data', take(process.stderr))
    const timer = options.limitMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), options.limitMs)
    const end = (code: number, note = '') => {
      clearTimeout(timer)
      resolve({ code, output: output + note, seconds: (performance.now() - started) / 1000 })
    }
    child.on('error', (error) => end(127, `${command}: ${error.message}`))
    child.on('close', (code, signal) => end(code ?? 1, signal ? `${command} was ended by ${signal}` : ''))
  })
}
