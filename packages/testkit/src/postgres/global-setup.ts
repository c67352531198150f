/** One PostgreSQL for all files of a run. */
export async function setup(): Promise<void> {}
