import { spawnSync } from 'node:child_process'

/** Process → parent, of the whole machine. */
export function allProcesses(): ReadonlyMap<number, number> {
  const { stdout } = spawnSync('ps', ['-e', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const rows = stdout.trim().split('\n')
  return new Map(rows.map((row) => row.trim().split(/\s+/).map(Number) as [number, number]))
}

/** Command lines that hold the text. */
export function commandsWith(text: string): { readonly pid: number; readonly command: string }[] {
  const { stdout } = spawnSync('ps', ['-e', '-ww', '-o', 'pid=,stat=,args='], { encoding: 'utf8' })
  return stdout
    .split('\n')
    .map((row) => /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(row))
    .flatMap((match) => (match?.[3]?.includes(text) && !match[2]?.startsWith('Z') ? [{ pid: Number(match[1]), command: match[3] }] : []))
}
