import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProgramLog } from '../program-log.ts'

export interface MemoryLog extends ProgramLog {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }[]
  readonly text: () => string
}

export function memoryLog(): MemoryLog {
  const lines: MemoryLog['lines'] = []
  const at =
    (level: string) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}) =>
      void lines.push({ level, message, fields })
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), text: () => lines.map(({ message }) => message).join('\n') }
}

const LIMIT_MS = 60_000

/** Polls until the condition holds. Fails with the name of what did not come true. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>, limitMs = LIMIT_MS): Promise<void> {
  const deadline = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export interface TestFolder extends AsyncDisposable {
  readonly path: string
  write(name: string, content: string, mode?: number): Promise<string>
}

export async function testFolder(): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), 'thv-programs-'))
  return {
    path,
    async write(name, content, mode = 0o644) {
      const file = join(path, name)
      await writeFile(file, content, { mode })
      return file
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true, maxRetries: 5 }),
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
