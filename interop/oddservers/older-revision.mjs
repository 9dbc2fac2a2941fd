// A server that answers initialize with the oldest revision.
import { answer, legacy, serve } from './server.mjs';

serve(message => answer(legacy(message, '2024-11-05')));
