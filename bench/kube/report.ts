/** Report of one measured process on a part of its work, or on its whole life so far. */
export interface Report {
  ms: number
  cpuMs: number
  rssMb: number
}

/** Starts to measure; the returned function prints the report as one JSON line. */
export function startMeasuring(): (more?: Record<string, number>) => void {
  const startedAt = performance.now()
  const cpuBefore = process.cpuUsage()
  return (more = {}) => print({ ms: performance.now() - startedAt, cpuMs: cpuMs(process.cpuUsage(cpuBefore)), rssMb: rssMb() }, more)
}

/** Since the start of the process, which is when its clock begins. */
export function reportLife(more: Record<string, number> = {}): void {
  print({ ms: performance.now(), cpuMs: cpuMs(process.cpuUsage()), rssMb: rssMb() }, more)
}

function print(report: Report, more: Record<string, number>): void {
  console.log(JSON.stringify({ ...report, ...more }))
}

const cpuMs = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000
const rssMb = () => process.memoryUsage.rss() / 2 ** 20
