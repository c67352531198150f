import { spawn } from 'node:child_process'

export interface CommandOptions {
  /** A file descriptor to read from. */
  readonly stdin?: number
  readonly limitMs?: number
  readonly env?: NodeJS.ProcessEnv
}

/** Runs a program to its end and returns what it wrote; its words are in the error when it fails. */
export function runCommand(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { stdin = 'ignore', limitMs = 60_000, env = process.env } = options
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: [stdin, 'pipe', 'pipe'], env, timeout: limitMs, killSignal: 'SIGKILL' })
    let output = ''
    let errors = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      errors += chunk.toString()
    })
    child.on('error', (cause) => reject(new Error(`${command} could not be started`, { cause })))
    child.on('close', (code, signal) => {
      if (code === 0) resolve(output)
      else
        reject(
          new Error(`${[command, ...args].join(' ')}: ended by ${signal ?? `code ${code}`}: ${(errors || output).trim().slice(-2000)}`),
        )
    })
  })
}
