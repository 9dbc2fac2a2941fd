// A legacy server that starts slowly: it reads its first message after 4 s.
import { answer, legacy, serve } from './server.mjs';

setTimeout(() => serve(message => answer(legacy(message))), 4000);
